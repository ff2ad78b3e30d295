"""A client of a Smart Feed over XMPP, through a server of any kind: it bootstraps, follows the pushes and reads
what does not follow, as the seed tells. It prints one line for each check, and ends with 1 after the first that fails.

    suite.py HOST PORT SERVICE NODE USER PUBLISHER

PUBLISHER is a URL: POST /COUNT puts so many posts into the feed, POST /-N deletes post N. The node `empty` holds
nothing, and one address may have 5 subscriptions.
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
        self.to = str(message["to"])
        self.pushes.put_nowait((items.get("node"), [(t.tag.split("}")[1], t.get("id"), len(list(t))) for t in told], headers, message["type"]))

    async def ask(self, kind, child):
        iq = self.make_iq(ito=SERVICE, ifrom=self.boundjid, itype=kind)
        iq.append(child)
        return (await iq.send(timeout=PATIENCE)).xml

    async def page(self, node=NODE, set_first=False, **rsm):
        parts = [ET.Element("{%s}items" % PUBSUB, node=node), ET.Element("{%s}set" % RSM)]
        for name, value in rsm.items():
            ET.SubElement(parts[1], "{%s}%s" % (RSM, name)).text = value
        return await self.pubsub(*(reversed(parts) if set_first else parts))

    async def items(self, *ids, node=NODE, **attributes):
        """Items by their ids, or by attributes of `items`."""
        items = ET.Element("{%s}items" % PUBSUB, node=node, **attributes)
        for one in ids:
            ET.SubElement(items, "{%s}item" % PUBSUB, id=one)
        return await self.pubsub(items)

    async def pubsub(self, *parts):
        """The ids, the parts of the set, and the `items` of an answer."""
        pubsub = ET.Element("{%s}pubsub" % PUBSUB)
        pubsub.extend(parts)
        answer = (await self.ask("get", pubsub)).find("{%s}pubsub" % PUBSUB)
        items, set_ = answer.find("{%s}items" % PUBSUB), answer.find("{%s}set" % RSM)
        told = {part.tag.split("}")[1]: part for part in ([] if set_ is None else set_)}
        return [item.get("id") for item in items], told, items

    async def about(self, what, node, jid):
        """Subscribes an address, or ends its subscription."""
        pubsub = ET.Element("{%s}pubsub" % PUBSUB)
        ET.SubElement(pubsub, "{%s}%s" % (PUBSUB, what), node=node, jid=jid)
        answer = await self.ask("set", pubsub)
        return answer.find("{%s}pubsub/{%s}subscription" % (PUBSUB, PUBSUB))

    async def subscriptions(self):
        pubsub = ET.Element("{%s}pubsub" % PUBSUB)
        ET.SubElement(pubsub, "{%s}subscriptions" % PUBSUB)
        answer = await self.ask("get", pubsub)
        all_ = answer.find("{%s}pubsub/{%s}subscriptions" % (PUBSUB, PUBSUB))
        return {(one.get("node"), one.get("jid")) for one in all_}

    async def answers(self, raw, id):
        """The answers to a stanza as it is written here, within a second."""
        came = []

        def look(stanza):
            if stanza.xml.get("id") == id:
                came.append(stanza.xml)
            return stanza

        self.add_filter("in", look)
        self.send_raw(raw)
        await asyncio.sleep(1)
        self.del_filter("in", look)
        return came

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


async def refused(what, asking, condition, detail=None):
    """Checks that a request is refused, and by which condition of XEP-0060."""
    try:
        await asking
        check(what, False, "it was answered")
    except slixmpp.exceptions.IqError as error:
        details = [child.tag for child in error.iq.xml.iter() if child.tag.startswith("{%s#errors}" % PUBSUB)]
        expect = ["{%s#errors}%s" % (PUBSUB, detail)] if detail else []
        check(what, (error.condition, details) == (condition, expect), (error.condition, details))


async def main():
    client = Client()
    client.connect(HOST, int(PORT))
    await asyncio.wait_for(client.ready.wait(), PATIENCE)
    client.send_presence()
    info = await client.plugin["xep_0030"].get_info(jid=SERVICE)
    check("XMPP-1 the server leads stanzas to the component and back", info["type"] == "result")
    check("XMPP-2 its answers say who they are from", str(info["from"]) == SERVICE, info)
    check("XMPP-10 the service is pubsub", ("pubsub", "service") in {i[:2] for i in info["disco_info"]["identities"]})
    features = info["disco_info"]["features"]
    check("XMPP-10 it tells what it can", {RSM, SHIM, PUBSUB, "urn:xmpp:ping", PUBSUB + "#retrieve-items"} <= features, features)
    leaf = await client.plugin["xep_0030"].get_info(jid=SERVICE, node=NODE)
    check("XMPP-11 a node is a leaf", ("pubsub", "leaf") in {i[:2] for i in leaf["disco_info"]["identities"]})
    await refused("XMPP-11 an unknown node", client.plugin["xep_0030"].get_info(jid=SERVICE, node="none"), "item-not-found")
    headers = await client.plugin["xep_0030"].get_info(jid=SERVICE, node=SHIM)
    wanted = {f"{SHIM}#{name}" for name in ("TotalItems", "PreviousCursor", "LastCursor")}
    check("XMPP-12 the headers of pushes are listed", wanted <= headers["disco_info"]["features"])
    nodes = await client.plugin["xep_0030"].get_items(jid=SERVICE)
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
    check("XMPP-21 in the order of the feed", back == everything[-3:], back)
    check("XMPP-22 its index", told["first"].get("index") == str(count - 3))
    first = told["first"].text
    ids, told, _ = await client.page(max="2", before=first)
    check("XMPP-24 the page right before it", ids == everything[-5:-3], ids)
    check("XMPP-22 its index", told["first"].get("index") == str(count - 5))
    ids, told, items = await client.page(node=f"{NODE}?", set_first=True, max="2")
    check("XMPP-20 the set before the items, and the node as it was spelt", items.get("node") == f"{NODE}?" and len(ids) == 2)
    ids, told, _ = await client.page(max="0")
    check("XMPP-25 the count alone", not ids and "first" not in told and told["count"].text == str(count))
    for index in (0, 17, count - 1):
        ids, told, _ = await client.page(max="2", index=str(index))
        check("XMPP-26 a page at an index", ids == everything[index : index + 2], ids)
        check("XMPP-22 its index", told["first"].get("index") == str(index))
    ids, told, _ = await client.page(index=str(count))
    check("XMPP-26 beyond the end", not ids and "first" not in told)
    _, told, _ = await client.page(max="1", index="9")
    t = told["first"].text.removeprefix("cursor:").split("_")[0]
    for cursor in (f"cursor:{t}_0_1", f"time:{t}"):
        ids, _, _ = await client.page(max="1", after=cursor)
        check("XMPP-27 a cursor that does not hold is its time" if cursor[0] == "c" else "XMPP-28 a time holds its own item", ids == [everything[9]], ids)
    created = f"{NODE}?order=created"
    ids, _, _ = await client.page(node=created, max="2", after=everything[4])
    check("XMPP-28 an id is a position where items stay", ids == everything[5:7], ids)
    await refused("XMPP-28 an id that there is not", client.page(node=created, after="id:none"), "item-not-found")
    await refused("XMPP-28 an id where items move", client.page(after=everything[4]), "feature-not-implemented")
    ids, told, _ = await client.items()
    check("XMPP-29 all items without a set", ids == everything and told["count"].text == str(count))
    ids, _, _ = await client.items(max_items="2")
    check("XMPP-30 the newest", ids == everything[-2:], ids)
    ids, _, items = await client.items(everything[7], "none", everything[3])
    check("XMPP-31 items by their ids", ids == [everything[7], everything[3]], ids)
    ids, _, _ = await client.items("none")
    check("XMPP-31 none of them", ids == [])
    ids, told, _ = await client.page(node="empty")
    check("XMPP-33 an empty feed", not ids and told["count"].text == "0" and "first" not in told)
    for bad in ({"max": "x"}, {"after": "urn:x"}, {"index": "-1"}, {"node": f"{NODE}?max=1"}):
        await refused(f"section 6 {bad}", client.page(**bad), "bad-request")
    await refused("section 6 an unknown node", client.page(node="none"), "item-not-found")
    await refused("section 6 an unknown parameter", client.page(node=f"{NODE}?x=1"), "item-not-found")
    iq = f"<iq type='get' id='odd' to='{SERVICE}'>%s</iq>"
    came = await client.answers(iq % "<x xmlns='urn:x'/>", "odd")
    check("XMPP-6 one answer to what nobody knows", [one.get("type") for one in came] == ["error"], came)
    came = await client.answers(iq % ("<x xmlns='urn:x'>" + "<y>" * 40 + "</y>" * 40 + "</x>"), "odd")
    check("XMPP-5 what is too deep is refused", len(came) == 1 and any(one.tag.endswith("}policy-violation") for one in came[0].iter()), came)
    client.send_raw(f"<message type='headline' to='{SERVICE}'><body>hello</body></message><iq type='result' id='x' to='{SERVICE}'/>")
    await client.plugin["xep_0199"].send_ping(SERVICE, timeout=PATIENCE)
    check("XMPP-6 and the stream goes on", True)

    # Bootstrap: subscribe, then fetch the most recent item (P8).
    jid, bare = str(client.boundjid), client.boundjid.bare
    state = await client.about("subscribe", NODE, jid)
    check("XMPP-41 subscribed", state.get("subscription") == "subscribed" and state.get("subid") is None)
    await client.about("subscribe", NODE, jid)
    await client.about("subscribe", "empty", bare.upper())
    both = {(NODE, jid), ("empty", bare)}
    check("XMPP-41 twice is once", await client.subscriptions() == both)
    check("XMPP-44 the subscriptions of an address and its resources", await client.subscriptions() == both)
    await refused("XMPP-40 the address of another", client.about("subscribe", NODE, "bob@localhost"), "bad-request", "invalid-jid")
    await refused("XMPP-40 none", client.about("subscribe", NODE, "@"), "bad-request", "invalid-jid")
    await refused("XMPP-43 not subscribed", client.about("unsubscribe", NODE, bare), "unexpected-request", "not-subscribed")
    await refused("XMPP-43 that of another", client.about("unsubscribe", NODE, "bob@localhost"), "forbidden")
    await refused("XMPP-43 an unknown node", client.about("unsubscribe", "none", bare), "item-not-found")
    for n in range(3):
        await client.about("subscribe", f"empty?q={n}", bare)
    # The library knows no policy-violation.
    one_more = f"<pubsub xmlns='{PUBSUB}'><subscribe node='empty?q=3' jid='{bare}'/></pubsub>"
    came = await client.answers(f"<iq type='set' id='more' to='{SERVICE}'>{one_more}</iq>", "more")
    errors = {one.tag.split("}")[1] for answer in came for one in answer.iter()}
    check("XMPP-45 one too many", {"policy-violation", "too-many-subscriptions"} <= errors, errors)
    for n in range(3):
        await client.about("unsubscribe", f"empty?q={n}", bare)
    _, told, _ = await client.page(max="1", before="")
    known = told["last"].text.removeprefix("cursor:")
    publish(3)
    for n in range(3):
        node, told, headers, kind = await client.push()
        check("XMPP-50 a headline of the node", (node, kind) == (NODE, "headline"), (node, kind))
        check("XMPP-53 one item a message, with its entry", len(told) == 1 and told[0][0] == "item" and told[0][2] == 1, told)
        check("XMPP-52 it follows", headers.get("PreviousCursor") == known, headers)
        check("XMPP-51 the total", headers["TotalItems"] == str(count + 3), headers)
        check("XMPP-42 to the address that is subscribed", client.to == jid, client.to)
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
    check("XMPP-46 the subscriptions are kept", await client.subscriptions() == both)
    await client.about("unsubscribe", NODE, jid)
    await client.about("subscribe", NODE, bare)
    publish(1)
    await client.push()
    check("XMPP-42 to the bare address", client.to == bare, client.to)
    await client.about("unsubscribe", NODE, bare)
    publish(1)
    await asyncio.sleep(2)
    check("XMPP-56 no push to who has unsubscribed", client.pushes.empty())
    print("DONE", flush=True)
    await client.disconnect()


asyncio.run(main())
