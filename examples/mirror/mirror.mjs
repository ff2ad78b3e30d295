// Mirrors a Smart Feed into a file: node mirror.mjs URL FILE [--once]
import { open, readFile, rename } from "node:fs/promises";

const [url, path, flag] = process.argv.slice(2);
const once = flag === "--once";
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
    timeout: once ? 0 : 55,
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
  // The feed was restored from an older copy, which does not know all of these items.
  if (answer.headers.get("smart-feed-cursor") === "ahead") throw new Error("the feed was restored; mirror it into a new file");
  // The cursor is not one of this feed, or of this reader's part of it: all items follow.
  if (answer.headers.get("smart-feed-cursor") === "reset") state.items = {};
  for (const item of page.items) {
    if (item.deleted) delete state.items[item.id];
    else state.items[item.id] = item;
  }
  state.cursor = page.last_cursor;
  await save();
  if (once && !page.next) break;
}
