CREATE OR REPLACE VIEW {database}.candles_{interval}
(
    coin_id LowCardinality(String),
    start DateTime('UTC'),
    open Float64,
    high Float64,
    low Float64,
    close Float64,
    volume Decimal(76, 18),
    volume_usd Float64,
    trades UInt64,
    minutes UInt16,
    newest DateTime('UTC'),
    complete Bool
)
AS SELECT m.coin_id AS coin_id, {floor}(m.start, 'UTC') AS start,
    argMin(m.open, m.start) AS open, max(m.high) AS high, min(m.low) AS low, argMax(m.close, m.start) AS close,
    sum(m.volume) AS volume,
    -- A sum of floats depends on its order, which is not the log's here; one of decimals does not.
    toFloat64(sum(toDecimal256(m.volume_usd, 18))) AS volume_usd,
    sum(m.trades) AS trades, toUInt16(count()) AS minutes, max(m.start) AS newest, toBool(count() = {seconds} / 60) AS complete
FROM {database}.candles_1m AS m FINAL
GROUP BY m.coin_id, {floor}(m.start, 'UTC')
COMMENT 'Live minutes folded into longer candles'
