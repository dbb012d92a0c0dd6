CREATE OR REPLACE VIEW default.v_completeness_daily
(
    day Date COMMENT 'Day, UTC. A condition on it is fast',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    symbol LowCardinality(String) COMMENT 'Symbol of the coin, upper case',
    minutes UInt16 COMMENT 'Minutes of the day with a candle, as v_candles_1m has them',
    live UInt16 COMMENT 'Of them, those folded from published prices',
    backfill UInt16 COMMENT 'Of them, those that the venues'' own candles fill',
    import UInt16 COMMENT 'Of them, those that imported files fill',
    missing UInt16 COMMENT 'Minutes of the day without a candle: of 1440, or of those that have closed for any coin while the day goes on',
    compared UInt64 COMMENT 'Minutes of its markets that were received live and are compared with the venue''s own candle in v_completeness',
    complete UInt64 COMMENT 'Of them, those that were found complete',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: a minute after the end of the day by log time. While the day goes on the row changes, and this lies ahead; a back-fill changes it afterwards, and when is not kept'
)
AS SELECT c.day AS day, c.coin_id AS coin_id, transform(c.coin_id, {coin_ids}, {coin_symbols}, '') AS symbol, c.minutes AS minutes, c.live AS live, c.backfill AS backfill, c.import AS import,
    toUInt16(greatest(0, if(c.day = toDate(l.newest), toHour(l.newest) * 60 + toMinute(l.newest) + 1, 1440) - c.minutes)) AS missing, v.compared AS compared, v.complete AS complete,
    toDateTime64(toDateTime(c.day + 1, 'UTC') + 60, 9, 'UTC') AS published
FROM (
    SELECT toDate(m.start) AS day, m.coin_id AS coin_id, toUInt16(count()) AS minutes, toUInt16(countIf(m.live = 1)) AS live, toUInt16(countIf(m.live = 0 AND m.imported = 0)) AS backfill,
        toUInt16(countIf(m.live = 0 AND m.imported = 1)) AS import
    FROM {database}.charted_minutes AS m GROUP BY day, coin_id
) AS c
CROSS JOIN (SELECT max(start) AS newest FROM {database}.candles_1m) AS l
LEFT JOIN (SELECT toDate(start) AS day, coin_id, count() AS compared, countIf(verdict = 'complete') AS complete FROM default.v_completeness GROUP BY day, coin_id) AS v
    ON v.day = c.day AND v.coin_id = c.coin_id
COMMENT 'How much of each coin''s day there is: minutes with a candle, by where they come from, and how many of its markets'' minutes are complete by the venues'' own candles, one row a coin and day with a candle, kept for ever'
