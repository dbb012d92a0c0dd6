CREATE OR REPLACE VIEW default.v_universe_at
(
    coin_id String COMMENT 'Canonical id of the coin',
    symbol String COMMENT 'Symbol on the day that the figures are of; of a coin that was only listed the base of its markets',
    name String COMMENT 'Name on that day; empty of a coin that was only listed',
    rank UInt32 COMMENT 'By market cap at the end of that day, 1 is the largest; 0 without one',
    price Nullable(Float64) COMMENT 'Last price of that day, USD; NULL of a coin that was only listed',
    price_source LowCardinality(String) COMMENT 'median: published from our venues; else the source that reports the price of a coin which they do not; empty of a coin that was only listed',
    market_cap Nullable(Float64) COMMENT 'At the end of that day, USD; NULL where price or supply was not known',
    volume_24h Nullable(Float64) COMMENT 'Volume of the 24 h before its last change on that day, USD',
    day Nullable(Date) COMMENT 'Day that the figures are of: the last with a change of them that had ended and was known; NULL of a coin that was only listed',
    venues UInt64 COMMENT 'Venues that listed a market of it at the instant; 0 before lists were recorded',
    markets Array(Tuple(venue LowCardinality(String), symbol String, quote_id LowCardinality(String))) COMMENT 'Those markets: venue, symbol as on the wire, and coin id or currency code of the quote',
    simulated Bool COMMENT 'Made from simulated prices or lists',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: the later of a minute after the end of day and the newest change of the lists that it shows. Never after the instant that is asked for'
)
AS SELECT if(m.coin_id = '', l.coin_id, m.coin_id) AS coin_id, if(m.coin_id = '', l.base, m.symbol) AS symbol, m.name AS name, m.rank AS rank,
    if(m.coin_id = '', NULL, m.price) AS price, m.price_source AS price_source, m.market_cap AS market_cap, m.volume_24h AS volume_24h, if(m.coin_id = '', NULL, m.day) AS day,
    toUInt64(arrayUniq(l.markets.venue)) AS venues, l.markets AS markets, m.simulated OR l.simulated AS simulated,
    greatest(if(m.coin_id = '', l.changed, toDateTime64(toDateTime(m.day + 1, 'UTC') + 60, 9, 'UTC')), l.changed) AS published
FROM (
    -- What was gone on its newest day is no coin of that instant; the day before must not take its place.
    SELECT * FROM (
        SELECT coin_id, day, symbol, name, rank, price, price_source, market_cap, volume_24h, simulated FROM {database}.markets_1d FINAL
        WHERE toDateTime(day + 1, 'UTC') + 60 <= {at:DateTime64(3, 'UTC')}
        ORDER BY day DESC LIMIT 1 BY coin_id
    ) WHERE price_source != ''
) AS m
FULL OUTER JOIN (
    SELECT coin_id, arraySort(groupArray((venue, symbol, quote_id)))::Array(Tuple(venue LowCardinality(String), symbol String, quote_id LowCardinality(String))) AS markets,
        min(base) AS base, max(time) AS changed, max(simulated) AS simulated
    -- The change that held then: none came after it until the instant.
    FROM {database}.listing_changes WHERE time <= {at:DateTime64(3, 'UTC')} AND next > {at:DateTime64(3, 'UTC')} AND NOT gone AND coin_id != ''
    GROUP BY coin_id
) AS l ON l.coin_id = m.coin_id
COMMENT 'Which coins there were at an instant, as it was known then: FROM v_universe_at(at = ''2026-11-24 12:00:00''), in UTC, or at = now() - 86400; DESCRIBE (SELECT * FROM v_universe_at(at = now())) shows its columns. One row a coin that had a price on its newest finished day or was listed by a venue at the instant, with its figures of that day and its markets'
