// A client of another maker than the server's: it lists, reads, asks, waits and fetches, and prints what it saw.
// node client.mjs URL KEY MODE RECORD_ID, where MODE is `auto` or `legacy`
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, key, mode, recordId] = process.argv.slice(2);
const client = new Client({ name: "typescript", version: "1" }, { versionNegotiation: { mode } });
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${key}` } },
});
await client.connect(transport);
const { tools } = await client.listTools();
const read = await client.callTool({ name: "data__searchRecords", arguments: { region: "EU" } });
const asked = await client.callTool({
  name: "data__updateRecord",
  arguments: { record_id: recordId, changes: { phone: "+49 2" } },
});
const { ticket, status } = asked.structuredContent;
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), found: read.structuredContent.records, status }));
const fetched = await client.callTool({ name: "gadget__ticket", arguments: { ticket, wait_s: 30 } });
console.log(JSON.stringify({ isError: fetched.isError ?? false, text: fetched.content[0].text }));
await client.close();
