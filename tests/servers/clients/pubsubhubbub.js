// pubsubhubbub, a subscriber of PubSubHubbub: subscribes to one topic, and writes a line into heard.txt
// of a folder for each confirmation and each push.
const { createServer } = require("pubsubhubbub");
const fs = require("fs");
const path = require("path");
const [folder, port, topic, hub] = process.argv.slice(2);

const hear = (line) => fs.appendFileSync(path.join(folder, "heard.txt"), `${line}\n`);
const subscriber = createServer({ callbackUrl: `http://127.0.0.1:${port}/` });
subscriber.on("error", (error) => hear(`error ${error}`));
subscriber.on("denied", (data) => hear(`denied ${data.topic}`));
subscriber.on("subscribe", (data) => hear(`subscribed ${data.topic}`));
subscriber.on("feed", (data) => {
  const titles = data.feed.toString().match(/<title[^>]*>Post \d+/g) || [];
  for (const title of titles) hear(`item ${title.replace(/<[^>]*>/, "")} of ${data.topic}`);
});
subscriber.on("listen", () => subscriber.subscribe(topic, hub));
subscriber.listen(Number(port), "127.0.0.1");
