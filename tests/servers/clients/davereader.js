// davereader, a reader that speaks rssCloud: reads one feed into a folder, where heard.txt gets a line
// for each new item and for each request that it is sent.
const davereader = require("davereader");
const fs = require("fs");
const [folder, port, feed] = process.argv.slice(2);

const hear = (line) => fs.appendFileSync("heard.txt", `${line}\n`);
process.chdir(folder);
fs.mkdirSync("lists", { recursive: true });
fs.writeFileSync("lists/feeds.txt", `${feed}\n`);
davereader.init({
  httpPort: Number(port),
  flWebSocketEnabled: false,
  flSkipDuplicateTitles: false,
  newItemCallback: (url, item) => hear(`item ${item.title}`),
  handleHttpRequestCallback: (request, consumed) => {
    hear(`${request.method} ${request.lowerpath}`);
    consumed(false);
  },
  consoleLogCallback: () => {},
});
