#!/usr/bin/env python3
"""Follows a Smart Feed by push, and pulls what it missed: python3 push.py FEED HUB CALLBACK FILE SECRET [--sweep]

A feed that was restored does not know all that this mirror holds. The mirror then reads the whole feed, and drops what it did not meet. If
that is more than a tenth, it stops and asks; --sweep is the answer.
"""

import hmac
import http.server
import json
import os
import sys
import urllib.parse
import urllib.request

feed, hub, callback, path, secret = sys.argv[1:6]
topic = f"{feed}?order=modified"
METHODS = ("sha1", "sha256", "sha384", "sha512")
try:
    with open(path) as file:
        state = json.load(file)
except FileNotFoundError:
    state = {"cursor": "", "items": {}}


def save():
    with open(path + ".new", "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def apply(page):
    for item in page["items"]:
        if "met" in state:
            state["met"][item["id"]] = True
        if item.get("deleted"):
            state["items"].pop(item["id"], None)
        else:
            state["items"][item["id"]] = item
    state["cursor"] = page["last_cursor"]


def pull():
    while True:
        query = urllib.parse.urlencode({"order": "modified", "since": "cursor:" + state["cursor"], "timeout": 0})
        with urllib.request.urlopen(f"{feed}?{query}", timeout=90) as answer:
            page = json.load(answer)
            told, generation = answer.headers.get("Smart-Feed-Cursor"), answer.headers.get("Smart-Feed-Generation")
        is_known = state.get("generation", generation) == generation
        state["generation"] = generation
        if told == "ahead" or not is_known:
            # All of the new generation is read. Nothing goes before the end of it.
            state["met"], state["cursor"] = {}, ""
            continue
        if told == "reset":
            state["items"] = {}
            state.pop("met", None)
        apply(page)
        if "next" not in page:
            return sweep()


def sweep():
    if "met" not in state:
        return
    unmet = [id for id in state["items"] if id not in state["met"]]
    if len(unmet) * 10 > len(state["items"]) and "--sweep" not in sys.argv:
        sys.exit(f"the feed was restored or begun anew, and {len(unmet)} items are not in it any more; --sweep drops them")
    for id in unmet:
        del state["items"][id]
    del state["met"]


def is_signed(signature, body):
    method, _, sent = signature.partition("=")
    return method in METHODS and hmac.compare_digest(sent, hmac.new(secret.encode(), body, method).hexdigest())


class Callback(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body=b"", headers={}):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        mode = query.get("hub.mode", [""])[0]
        if mode == "denied":
            print("the hub ended it:", query.get("hub.reason", ["no reason"])[0], flush=True)
            return self.answer(200)
        if query.get("hub.topic", [""])[0] != topic:
            return self.answer(404)  # nothing that we asked for
        body, signed = query["hub.challenge"][0].encode(), self.headers.get("X-Hub-Signature", "")
        if not is_signed(signed, body):
            return self.answer(404)  # somebody else asked, who does not know our secret
        self.answer(200, body, {"X-Hub-Confirms": "cursor"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not is_signed(self.headers.get("X-Hub-Signature", ""), body):
            return self.answer(202)  # WebSub, section 7.1: take it, and throw it away
        if self.headers["Smart-Feed-Last"] == state["cursor"]:
            return self.answer(204)  # an old one, that we have
        is_next = self.headers["Smart-Feed-Prev"] == state["cursor"]
        if is_next and "Smart-Feed-Cursor" not in self.headers:
            apply(json.loads(body))
        else:
            pull()  # something came in between, or what we hold is not the feed's any more
        save()
        print("at", state["cursor"], flush=True)
        self.answer(204)

    def log_message(self, *_):
        pass


at = urllib.parse.urlsplit(callback)
server = http.server.HTTPServer((at.hostname, at.port), Callback)
pull()
save()
form = {
    "hub.mode": "subscribe",
    "hub.topic": topic,
    "hub.callback": callback,
    "hub.secret": secret,
    "hub.since": "cursor:" + state["cursor"],
}
with urllib.request.urlopen(hub, urllib.parse.urlencode(form).encode(), timeout=30) as answer:
    print("the hub says", answer.status, flush=True)
server.serve_forever()
