// Drives the client of the official TypeScript SDK for MCP. Each line of input names a call, and
// each line of output is its result.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, secret] = process.argv.slice(2);
const client = new Client({ name: "typescript", version: "1" });
const requestInit = { headers: { Authorization: `Bearer ${secret}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
for await (const line of createInterface({ input: process.stdin })) {
  const { tool, params } = JSON.parse(line);
  let answer;
  if (tool) {
    answer = JSON.stringify(await client.callTool({ name: tool, arguments: params }).catch((error) => String(error)));
  } else {
    answer = (await client.listTools()).tools.map((each) => each.name);
  }
  console.log(JSON.stringify(answer));
}
await client.close();
