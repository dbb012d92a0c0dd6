CREATE OR REPLACE VIEW default.v_universe
(
    day Date COMMENT 'Day, UTC',
    coin_id String COMMENT 'Canonical id of the coin',
    symbol String COMMENT 'Symbol on that day',
    name String COMMENT 'Name on that day',
    status Enum8('active' = 1, 'renamed' = 2, 'gone' = 3) COMMENT 'active: it had a price at the end of the day; renamed: it had, under another symbol than on its day before; gone: it had none any more',
    rank UInt32 COMMENT 'By market cap at the end of the day, 1 is the largest; 0 without one',
    price Nullable(Float64) COMMENT 'Last price of the day, USD; NULL of what is gone',
    price_source LowCardinality(String) COMMENT 'median: published from our venues; else the source that reports the price of a coin which they do not; empty of what is gone',
    market_cap Nullable(Float64) COMMENT 'At the end of the day, USD; NULL where price or supply is not known',
    volume_24h Nullable(Float64) COMMENT 'Volume of the 24 h before its last change, USD',
    venues UInt64 COMMENT 'Venues that listed a market of it at any time of the day; 0 of days before lists were recorded',
    time DateTime('UTC') COMMENT 'End of the minute of its last change on that day',
    simulated Bool COMMENT 'Made from simulated prices',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: a minute after the end of the day by log time. While the day goes on the row is replaced, and this lies ahead'
)
AS SELECT m.day AS day, m.coin_id AS coin_id, symbol, name,
    multiIf(price_source = '', 'gone', lagInFrame(m.symbol, 1, m.symbol) OVER (PARTITION BY m.coin_id ORDER BY m.day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) != m.symbol, 'renamed', 'active') AS status,
    rank, if(price_source = '', NULL, m.price) AS price, price_source, market_cap, volume_24h, l.venues AS venues, time, simulated,
    toDateTime64(toDateTime(m.day + 1, 'UTC') + 60, 9, 'UTC') AS published
FROM (SELECT * FROM {database}.markets_1d FINAL) AS m
LEFT JOIN (
    SELECT coin_id, day, uniqExact(venue) AS venues
    FROM (
        SELECT coin_id, venue, arrayJoin(arrayMap(i -> toDate(time) + i, range(toUInt32(1 + greatest(0, dateDiff('day', time, least(next, toDateTime64(assumeNotNull((SELECT max(day) FROM {database}.markets_1d)), 9, 'UTC')))))))) AS day
        FROM {database}.listing_changes WHERE NOT gone AND coin_id != ''
    ) GROUP BY coin_id, day
) AS l ON l.coin_id = m.coin_id AND l.day = m.day
COMMENT 'Which coins there were, with rank and market cap, one row a coin and day in which anything of it changed, kept for ever: those that are gone too, so that a choice of coins is not one of survivors'
