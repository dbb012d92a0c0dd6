// The first three frames with prices that changed. A browser's WebSocket cannot send headers: the key is a subprotocol.
const url = (process.env.MARKETLOG_URL ?? "http://127.0.0.1:8080").replace("http", "ws");
const stream = new WebSocket(`${url}/api/v1/prices/ws`, ["marketlog.v1", `key.${process.env.MARKETLOG_API_KEY}`]);
let frames = 0;

stream.onmessage = (message: MessageEvent) => {
  const frame = JSON.parse(message.data);
  if (frame.type !== "price_update") return;
  console.log(`${frame.timestamp} ${frame.data.length} prices, ${frame.data[0].symbol} ${frame.data[0].price}`);
  if (++frames === 3) stream.close();
};
stream.onclose = (end: CloseEvent) => process.exit(frames === 3 ? 0 : end.code % 256 || 1);
