// The tools that a model is offered, and what one of them answers.
const url = process.env.MARKETLOG_URL ?? "http://127.0.0.1:8080";

async function ask(method: string, params: object = {}): Promise<any> {
  const answer = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.MARKETLOG_API_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const frame: any = await answer.json();
  if (frame.error) throw new Error(`${method}: ${frame.error.message}`);
  return frame.result;
}

console.log((await ask("tools/list")).tools.map((tool: { name: string }) => tool.name));
console.log((await ask("tools/call", { name: "get_price", arguments: { symbols: ["BTC", "ETH"] } })).structuredContent);
