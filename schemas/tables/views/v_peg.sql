CREATE OR REPLACE VIEW default.v_peg
(
    time DateTime('UTC') COMMENT 'Second of the published price, or the end of the minute',
    coin_id String COMMENT 'Canonical id of the stablecoin',
    peg String COMMENT 'Currency that it aims at one unit of',
    price Float64 COMMENT 'Price, USD',
    target_usd Float64 COMMENT 'What the unit of its peg cost, USD: the fixing of that day or the newest of the 6 days before; of a currency without fixings, what sources gave last for the day',
    deviation_bps Float64 COMMENT '(price - target) / target, basis points; negative below the peg',
    resolution Enum8('second' = 1, 'minute' = 2) COMMENT 'second: a published price; minute: the close of a live minute, where the seconds are not kept any more',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when the price was published, as in v_prices; of a minute a minute after its end by log time'
)
AS SELECT p.time AS time, p.coin_id AS coin_id, p.peg AS peg, p.price AS price, if(p.peg = 'USD', 1, f.usd) AS target_usd,
    (price - target_usd) / target_usd * 10000 AS deviation_bps, 'second' AS resolution,
    if(p.published = 0, toDateTime64('2200-01-01 00:00:00', 9, 'UTC'), fromUnixTimestamp64Nano(p.published, 'UTC')) AS published
FROM (
    SELECT time, coin_id, price, published, transform(toString(coin_id), {stablecoins}, {pegs}, '') AS peg
    FROM {database}.prices FINAL WHERE coin_id IN {stablecoins} AND reason = ''
) AS p
ASOF LEFT JOIN {database}.peg_rates(before = 9223372036854775807) AS f ON f.currency = p.peg AND toDate(p.time) >= f.day
WHERE p.peg = 'USD' OR f.usd > 0 AND toDate(p.time) - f.day <= 6
UNION ALL
SELECT m.time, m.coin_id, m.peg, m.price, m.target_usd, m.deviation_bps, 'minute', toDateTime64(m.time + toIntervalMinute(1), 9, 'UTC') FROM {database}.peg_minutes(before = 9223372036854775807) AS m
WHERE m.start < (SELECT if(count() = 0, toDateTime(4294967295, 'UTC'), min(time)) FROM {database}.prices)
COMMENT 'How far each stablecoin of the coin table lay from its peg, one row a published price, and before those a minute'
