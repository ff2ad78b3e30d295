// Verifies messages with the standardwebhooks package of npm: FILE SECRET.
const fs = require("node:fs");
const { Webhook } = require("standardwebhooks");

const messages = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const webhook = new Webhook(process.argv[3]);
for (const message of messages) {
  webhook.verify(message.body, message.headers);
  let isTaken = true;
  try {
    webhook.verify(message.body + " ", message.headers);
  } catch {
    isTaken = false;
  }
  if (isTaken) throw new Error("a changed body was taken");
}
console.log(messages.length);
