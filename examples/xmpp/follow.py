#!/usr/bin/env python3
"""Shows the changes of a feed over XMPP as they are pushed: python3 follow.py ADDRESS PASSWORD SERVICE NODE [HOST:PORT]

Needs slixmpp 1.17. HOST:PORT is a server on this machine that is spoken to without TLS.
"""

import asyncio
import sys

import slixmpp
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath

address, password, service, node = sys.argv[1:5]
near = sys.argv[5].rsplit(":", 1) if len(sys.argv) > 5 else None
PUBSUB = "http://jabber.org/protocol/pubsub"
ATOM = "http://www.w3.org/2005/Atom"
titles = {}


def title_of(item):
    title = item.find("{%s}entry/{%s}title" % (ATOM, ATOM))
    return "" if title is None else title.text


def show(message):
    for told in message.xml.find("{%s#event}event/{%s#event}items" % (PUBSUB, PUBSUB)):
        id = told.get("id")
        if told.tag.endswith("}retract"):
            print("deleted ", titles.pop(id, id), flush=True)
        else:
            print("edited  " if id in titles else "new     ", title_of(told), flush=True)
            titles[id] = title_of(told)


async def main():
    plain = {"feature_mechanisms": {"unencrypted_scram": near is not None}}
    client = slixmpp.ClientXMPP(address, password, plugin_config=plain)
    client.register_plugin("xep_0060")
    client.register_handler(Callback("push", MatchXPath("{jabber:client}message/{%s#event}event" % PUBSUB), show))
    ready = asyncio.Event()
    client.add_event_handler("session_start", lambda _: ready.set())
    if near:
        client.enable_plaintext, client.enable_starttls, client.enable_direct_tls = True, False, False
        client.connect(near[0], int(near[1]))
    else:
        client.connect()
    await ready.wait()
    client.send_presence()
    # First subscribe, then read: so nothing falls between the two.
    await client.plugin["xep_0060"].subscribe(service, node, bare=False)
    answer = await client.plugin["xep_0060"].get_items(service, node)
    for item in answer.xml.iter("{%s}item" % PUBSUB):
        titles[item.get("id")] = title_of(item)
    print(f"{len(titles)} posts are read, and {node} is subscribed to", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
