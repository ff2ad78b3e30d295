"""A client of a Smart Feed over XMPP, through a server of any kind: it bootstraps, follows the pushes and reads
what does not follow, as the seed tells. It prints one line for each check, and ends with 1 after the first that fails.

    suite.py HOST PORT SERVICE NODE USER PUBLISHER

PUBLISHER is a URL: POST /COUNT puts so many posts into the feed, POST /-N deletes post N.
"""

import asyncio
import sys
import time
import urllib.request

import slixmpp
from slixmpp.xmlstream import ET

HOST, PORT, SERVICE, NODE, USER, PUBLISHER = sys.argv[1:]
PUBSUB = "http://jabber.org/protocol/pubsub"
EVENT = PUBSUB + "#event"
RSM = "http://jabber.org/protocol/rsm"
SHIM = "http://jabber.org/protocol/shim"
ATOM = "http://www.w3.org/2005/Atom"
PATIENCE = 60


def publish(what):
    urllib.request.urlopen(urllib.request.Request(f"{PUBLISHER}/{what}", method="POST"), timeout=PATIENCE).read()


class Client(slixmpp.ClientXMPP):
    def __init__(self):
        plain = {"feature_mechanisms": {"unencrypted_scram": True, "unencrypted_plain": True}}
        super().__init__(f"{USER}@localhost/suite", "pw", plugin_config=plain)
        self.enable_plaintext, self.enable_starttls, self.enable_direct_tls = True, False, False
        for plugin in ("xep_0030", "xep_0059", "xep_0060", "xep_0131", "xep_0199"):
            self.register_plugin(plugin)
        self.pushes, self.seen = asyncio.Queue(), set()
        matcher = slixmpp.xmlstream.matcher.MatchXPath("{jabber:client}message/{%s}event" % EVENT)
        self.register_handler(slixmpp.xmlstream.handler.Callback("push", matcher, self.pushed))
        self.ready = asyncio.Event()
        self.add_event_handler("session_start", lambda _: self.ready.set())

    def pushed(self, message):
        xml = message.xml
        items = xml.find("{%s}event/{%s}items" % (EVENT, EVENT))
        headers = {h.get("name"): h.text for h in xml.iter("{%s}header" % SHIM)}
        told = list(items)
        self.pushes.put_nowait((items.get("node"), [(t.tag.split("}")[1], t.get("id"), len(list(t))) for t in told], headers, message["type"]))

    async def ask(self, kind, child):
        iq = self.make_iq(ito=SERVICE, ifrom=self.boundjid, itype=kind)
        iq.append(child)
        return (await iq.send(timeout=PATIENCE)).xml

    async def page(self, node=NODE, **rsm):
        pubsub = ET.Element("{%s}pubsub" % PUBSUB)
        ET.SubElement(pubsub, "{%s}items" % PUBSUB, node=node)
        set_ = ET.SubElement(pubsub, "{%s}set" % RSM)
        for name, value in rsm.items():
            ET.SubElement(set_, "{%s}%s" % (RSM, name)).text = value
        answer = (await self.ask("get", pubsub)).find("{%s}pubsub" % PUBSUB)
        items = answer.find("{%s}items" % PUBSUB)
        told = {part.tag.split("}")[1]: part for part in answer.find("{%s}set" % RSM)}
        return [item.get("id") for item in items], told, items

    async def push(self):
        """The next push that is new: one that was written before a crash may come again."""
        while True:
            push = await asyncio.wait_for(self.pushes.get(), PATIENCE)
            if push[2]["LastCursor"] not in self.seen:
                self.seen.add(push[2]["LastCursor"])
                return push


def check(what, is_so, shown=""):
    print(("ok   " if is_so else "FAIL ") + what, shown if not is_so else "", flush=True)
    if not is_so:
        sys.exit(1)


async def main():
    client = Client()
    client.connect(HOST, int(PORT))
    await asyncio.wait_for(client.ready.wait(), PATIENCE)
    client.send_presence()
    info = await client["xep_0030"].get_info(jid=SERVICE)
    check("XMPP-10 the service is pubsub", ("pubsub", "service") in {i[:2] for i in info["disco_info"]["identities"]})
    nodes = await client["xep_0030"].get_items(jid=SERVICE)
    check("XMPP-13 the node is listed", NODE in {i[1] for i in nodes["disco_items"]["items"]})
    deadline = time.time() + PATIENCE
    while not (await client.page())[0]:
        check("the first document is read in time", time.time() < deadline)
        await asyncio.sleep(0.2)

    # Pages.
    everything, told, items = await client.page(max="1000")
    count = int(told["count"].text)
    check("XMPP-22 all items are counted", count == len(everything), (count, len(everything)))
    entries = [item.findall("{%s}entry" % ATOM) for item in items]
    check("XMPP-32 one entry an item", all(len(entry) == 1 for entry in entries))
    seen, after = [], None
    while True:
        ids, told, _ = await client.page(max="7", **({"after": after} if after else {}))
        if not ids:
            break
        seen += ids
        after = told["last"].text
        check("XMPP-23 cursors name the ends", after.startswith("cursor:"))
    check("XMPP-24 pages follow each other", seen == everything)
    back, told, _ = await client.page(max="3", before="")
    check("XMPP-24 the last page", back == everything[-3:], back)
    check("XMPP-22 its index", told["first"].get("index") == str(count - 3))
    for bad in ({"max": "x"}, {"after": "urn:x"}):
        try:
            await client.page(**bad)
            check(f"section 6 {bad}", False)
        except slixmpp.exceptions.IqError as error:
            check(f"section 6 {bad}", error.condition == "bad-request")

    # Bootstrap: subscribe, then fetch the most recent item (P8).
    jid = str(client.boundjid)
    subscribe = ET.Element("{%s}pubsub" % PUBSUB)
    ET.SubElement(subscribe, "{%s}subscribe" % PUBSUB, node=NODE, jid=jid)
    answer = await client.ask("set", subscribe)
    state = answer.find("{%s}pubsub/{%s}subscription" % (PUBSUB, PUBSUB))
    check("XMPP-41 subscribed", state.get("subscription") == "subscribed")
    _, told, _ = await client.page(max="1", before="")
    known = told["last"].text.removeprefix("cursor:")
    publish(3)
    for n in range(3):
        node, told, headers, kind = await client.push()
        check("XMPP-50 a headline of the node", (node, kind) == (NODE, "headline"), (node, kind))
        check("XMPP-53 one item a message, with its entry", len(told) == 1 and told[0][0] == "item" and told[0][2] == 1, told)
        check("XMPP-52 it follows", headers.get("PreviousCursor") == known, headers)
        check("XMPP-51 the total", headers["TotalItems"] == str(count + 3), headers)
        known = headers["LastCursor"]
    publish(-1)
    _, told, headers, _ = await client.push()
    check("XMPP-54 a retract", told[0][0] == "retract" and headers["PreviousCursor"] == known, told)
    gone = told[0][1]
    known = headers["LastCursor"]
    last, told, items = await client.page(max="1", before="")
    check("XMPP-54 its tombstone stays in pull", last == [gone] and told["count"].text == str(count + 3))
    title = items[0].find("{%s}entry/{%s}title" % (ATOM, ATOM)).text
    check("XMPP-54 as a stripped entry", title == "(deleted)", title)

    # After an outage: what was missed follows, and after much the newest alone.
    print("READY for the outage", flush=True)
    sys.stdin.readline()
    check("no push came twice", client.pushes.empty())
    publish(5)
    for n in range(5):
        _, told, headers, _ = await client.push()
        check("XMPP-52 it follows after the outage", headers["PreviousCursor"] == known, headers)
        known = headers["LastCursor"]
    unsubscribe = ET.Element("{%s}pubsub" % PUBSUB)
    ET.SubElement(unsubscribe, "{%s}unsubscribe" % PUBSUB, node=NODE, jid=jid)
    await client.ask("set", unsubscribe)
    publish(1)
    await asyncio.sleep(2)
    check("XMPP-56 no push to who has unsubscribed", client.pushes.empty())
    print("DONE", flush=True)
    await client.disconnect()


asyncio.run(main())
