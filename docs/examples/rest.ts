// The price of bitcoin, why it is that number, and what lending USDC earns.
const url = process.env.MARKETLOG_URL ?? "http://127.0.0.1:8080";

async function get(path: string): Promise<any> {
  const answer = await fetch(url + path, { headers: { Authorization: `Bearer ${process.env.MARKETLOG_API_KEY}` } });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const { aggregated } = (await get("/api/v1/prices/BTC")).data;
console.log(`BTC ${aggregated.price} USD, the median of ${aggregated.providers} providers`);
const why = (await get("/api/v1/prices/BTC/explain")).data;
console.log(`folded again from its inputs it is the same: ${why.reproduced}`);
for (const rate of (await get("/api/v1/rates/USDC?category=lending")).data.rates.slice(0, 5)) {
  console.log(`${rate.provider} ${rate.rate} % a year`);
}
