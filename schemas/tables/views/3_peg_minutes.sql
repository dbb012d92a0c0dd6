CREATE OR REPLACE VIEW {database}.peg_minutes
(
    start DateTime('UTC'),
    time DateTime('UTC'),
    coin_id String,
    peg String,
    price Float64,
    target_usd Float64,
    deviation_bps Float64
)
AS SELECT c.start AS start, c.start + toIntervalMinute(1) AS time, c.coin_id AS coin_id, c.peg AS peg, c.close AS price,
    if(c.peg = 'USD', 1, f.usd) AS target_usd, (price - target_usd) / target_usd * 10000 AS deviation_bps
FROM (SELECT start, coin_id, close, transform(toString(coin_id), {stablecoins}, {pegs}, '') AS peg FROM {database}.candles_1m FINAL WHERE coin_id IN {stablecoins}) AS c
ASOF LEFT JOIN {database}.peg_rates(before = {before:Int64}) AS f ON f.currency = c.peg AND toDate(c.start) >= f.day
WHERE c.peg = 'USD' OR f.usd > 0 AND toDate(c.start) - f.day <= 6
COMMENT 'How far each stablecoin closed from its peg in each live minute, by rates that had been said before an offset of reference.raw.v1'
