// What bench-server measures Coffer's GET /items beside: the list in memory behind Node's HTTP module, with the same
// authentication. Called with a JSON file: {"items": {COMPANY: […]}, "tokens": {SHA-256 in hexadecimal: {company, role,
// expiresAt}}}. Prints its port.
"use strict";
const { createServer } = require("node:http");
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");

const stored = JSON.parse(readFileSync(process.argv[2]));
const tokens = new Map(Object.entries(stored.tokens));
const items = new Map(Object.entries(stored.items));
const readers = new Set(["owner", "editor", "auditor"]);

function answer(response, status, value) {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body), "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  response.end(body);
}

const server = createServer((request, response) => {
  const [scheme, token] = (request.headers.authorization ?? "").split(" ");
  const caller = scheme === "Bearer" && token ? tokens.get(createHash("sha256").update(token).digest("hex")) : undefined;
  if (!caller || caller.expiresAt <= Date.now() / 1000) return answer(response, 401, { title: "A valid token is needed" });
  if (!readers.has(caller.role)) return answer(response, 403, { title: "This is not allowed to the caller" });
  if (request.method !== "GET" || request.url !== "/items") return answer(response, 404, { title: "Nothing is here" });
  answer(response, 200, items.get(caller.company));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
