// Lists and calls every tool with the official client, which holds each result against its schema, and prints what it
// got; then provokes each error that a client must act on. Arguments: the address, a key of plan Pro, one of plan
// Free, one with no requests left, and the arguments of each tool as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, pro, free, spent, calls] = process.argv.slice(2);

async function connect(key) {
  const client = new Client({ name: "gate", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));
  return client;
}

async function failure(does) {
  try {
    return { result: await does() };
  } catch (error) {
    return { code: error.code, word: error.data?.code, message: error.message };
  }
}

const client = await connect(pro);
const said = { server: client.getServerVersion(), tools: [], results: {}, failures: {} };
for (const tool of (await client.listTools()).tools) {
  said.tools.push(tool.name);
  const result = await client.callTool({ name: tool.name, arguments: JSON.parse(calls)[tool.name] });
  said.results[tool.name] = result.structuredContent;
}
said.failures.not_found = await failure(() => client.callTool({ name: "get_coin", arguments: { coinId: "nosuch" } }));
said.failures.invalid_params = await failure(() => client.callTool({ name: "get_coin", arguments: {} }));
said.failures.unauthorized = await failure(() => connect("ck_live_x"));
said.failures.plan_required = await failure(() => connect(free));
const late = await connect(spent);
said.failures.rate_limited = await failure(() => late.callTool({ name: "fear_greed_index", arguments: {} }));
await client.close();
await late.close();
console.log(JSON.stringify(said));
