#!/usr/bin/env python3
"""Mirrors a Smart Feed into a file: python3 mirror.py URL FILE [--once] [--sweep]

A store that was restored from an older copy does not know all that this mirror holds. The mirror then reads the whole feed, and drops what
it did not meet. If that is more than a tenth, it stops and asks; --sweep is the answer.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

url, path = sys.argv[1], sys.argv[2]
once = "--once" in sys.argv
try:
    with open(path) as file:
        state = json.load(file)
except FileNotFoundError:
    state = {"cursor": "", "items": {}}


def save():
    # The cursor and the items go into one file at once: a mirror that is killed goes on where it was.
    with open(path + ".new", "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


while True:
    query = urllib.parse.urlencode(
        {"order": "modified", "since": "cursor:" + state["cursor"], "timeout": 0 if once or "met" in state else 55}
    )
    try:
        with urllib.request.urlopen(f"{url}?{query}", timeout=90) as answer:
            page = json.load(answer)
            generation = answer.headers.get("Smart-Feed-Generation")
            is_known = state.get("generation", generation) == generation
            state["generation"] = generation
            if answer.headers.get("Smart-Feed-Cursor") == "ahead" or not is_known:
                # All of the new generation is read. Nothing goes before the end of it.
                state["met"], state["cursor"] = {}, ""
                save()
                continue
            # The cursor is not one of this feed, or of this reader's part of it: all items follow.
            if answer.headers.get("Smart-Feed-Cursor") == "reset":
                state["items"] = {}
                state.pop("met", None)
    except urllib.error.HTTPError as error:
        if error.code == 410:
            sys.exit("this feed is not served any more")
        if error.code < 500 and error.code != 429:
            sys.exit(f"{error.code}: {error.read().decode()}")
        time.sleep(int(error.headers.get("Retry-After") or 5))
        continue
    except OSError as error:
        print(f"no answer: {error}", file=sys.stderr)
        time.sleep(5)
        continue
    for item in page["items"]:
        if "met" in state:
            state["met"][item["id"]] = True
        if item.get("deleted"):
            state["items"].pop(item["id"], None)
        else:
            state["items"][item["id"]] = item
    state["cursor"] = page["last_cursor"]
    save()
    if "met" in state and "next" not in page:
        unmet = [id for id in state["items"] if id not in state["met"]]
        if len(unmet) * 10 > len(state["items"]) and "--sweep" not in sys.argv:
            sys.exit(f"the feed was restored or begun anew, and {len(unmet)} items are not in it any more; --sweep drops them")
        for id in unmet:
            del state["items"][id]
        del state["met"]
        save()
    if once and "next" not in page:
        break
