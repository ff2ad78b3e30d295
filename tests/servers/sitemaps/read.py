"""Reads the sitemaps of a site with the ultimate-sitemap-parser package of PyPI: ROOT."""
import json
import sys

from usp.tree import sitemap_tree_for_homepage

tree = sitemap_tree_for_homepage(sys.argv[1])
pages = {
    page.url: page.last_modified and page.last_modified.isoformat()
    for page in tree.all_pages()
}
print(json.dumps(pages, sort_keys=True))
