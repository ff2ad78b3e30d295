// Mirrors a Smart Feed into a file: node mirror.mjs URL FILE [--once] [--sweep]
//
// A feed that was restored does not know all that this mirror holds. The mirror then reads the whole feed, and drops what it did not meet. If
// that is more than a tenth, it stops and asks; --sweep is the answer.
import { open, readFile, rename } from "node:fs/promises";

const [url, path, ...flags] = process.argv.slice(2);
const once = flags.includes("--once");
const pause = (secs) => new Promise((done) => setTimeout(done, secs * 1000));

let state = { cursor: "", items: {} };
try {
  state = JSON.parse(await readFile(path, "utf8"));
} catch (error) {
  if (error.code !== "ENOENT") throw error;
}

// The cursor and the items go into one file at once: a mirror that is killed goes on where it was.
async function save() {
  const file = await open(`${path}.new`, "w");
  await file.writeFile(JSON.stringify(state));
  await file.sync();
  await file.close();
  await rename(`${path}.new`, path);
}

for (;;) {
  const query = new URLSearchParams({
    order: "modified",
    since: `cursor:${state.cursor}`,
    timeout: once || state.met ? 0 : 55,
  });
  let answer, page;
  try {
    answer = await fetch(`${url}?${query}`, { signal: AbortSignal.timeout(90_000) });
    if (answer.ok) page = await answer.json();
  } catch (error) {
    console.error(`no answer: ${error.message}`);
    await pause(5);
    continue;
  }
  if (answer.status === 410) throw new Error("this feed is not served any more");
  if (!answer.ok) {
    if (answer.status < 500 && answer.status !== 429) throw new Error(`${answer.status}: ${await answer.text()}`);
    await pause(Number(answer.headers.get("retry-after") ?? 5));
    continue;
  }
  const told = answer.headers.get("smart-feed-cursor");
  const generation = answer.headers.get("smart-feed-generation");
  const isKnown = (state.generation ?? generation) === generation;
  state.generation = generation;
  if (told === "ahead" || !isKnown) {
    // All of the new generation is read. Nothing goes before the end of it.
    Object.assign(state, { met: {}, cursor: "" });
    await save();
    continue;
  }
  // The cursor is not one of this feed, or of this reader's part of it: all items follow.
  if (told === "reset") {
    state.items = {};
    delete state.met;
  }
  for (const item of page.items) {
    if (state.met) state.met[item.id] = true;
    if (item.deleted) delete state.items[item.id];
    else state.items[item.id] = item;
  }
  state.cursor = page.last_cursor;
  await save();
  if (state.met && !page.next) {
    const all = Object.keys(state.items);
    const unmet = all.filter((id) => !state.met[id]);
    if (unmet.length * 10 > all.length && !flags.includes("--sweep")) {
      throw new Error(`the feed was restored or begun anew, and ${unmet.length} items are not in it any more; --sweep drops them`);
    }
    for (const id of unmet) delete state.items[id];
    delete state.met;
    await save();
  }
  if (once && !page.next) break;
}
