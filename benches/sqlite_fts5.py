#!/usr/bin/env python3
"""Bytes of SQLite with FTS5 for each byte of content, on the documents that
`EVERFEED_DOCUMENTS=FOLDER cargo test --release --test process import::memory -- --ignored` leaves.

Usage: sqlite_fts5.py FOLDER"""

import glob
import os
import sqlite3
import sys
import tempfile
import time
import xml.etree.ElementTree as tree

ATOM = "{http://www.w3.org/2005/Atom}"


def rows(folder):
    for name in sorted(glob.glob(os.path.join(folder, "*.xml"))):
        for entry in reversed(tree.parse(name).getroot().findall(ATOM + "entry")):
            yield [entry.findtext(ATOM + tag) for tag in ("id", "title", "published", "content")]


def main():
    kept = list(rows(sys.argv[1]))
    content = sum(len(text.encode()) for row in kept for text in row)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "items.db")
        began = time.time()
        base = sqlite3.connect(path)
        base.executescript(
            "create table items (t integer primary key, id text unique, title text, published text, body text);"
            "create index by_date on items (published);"
            "create virtual table words using fts5 (title, body, content='items', content_rowid='t');"
        )
        with base:
            base.executemany("insert into items (id, title, published, body) values (?, ?, ?, ?)", kept)
            base.execute("insert into words (rowid, title, body) select t, title, body from items")
        secs = time.time() - began
        base.execute("vacuum")
        base.close()
        size = os.path.getsize(path)
        print(f"{len(kept)} rows, {content} bytes of content: {size / content:.2f} bytes for each, {secs:.1f} s")


main()
