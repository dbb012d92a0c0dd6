CREATE OR REPLACE VIEW default.v_completeness
(
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market as on the wire',
    start DateTime('UTC') COMMENT 'Start of the minute, UTC',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    volume Float64 COMMENT 'Base traded by the trades that were received live; 0 where none was',
    venue_volume Float64 COMMENT 'Base traded by the venue''s own candle',
    volume_off Nullable(Float64) COMMENT 'How much of venue_volume is missing (negative) or too much, percent; NULL where the venue reports no volume',
    trades UInt64 COMMENT 'Trades that were received live',
    close Nullable(Float64) COMMENT 'Price of the last of them, in the quote; NULL without one',
    venue_close Float64 COMMENT 'Last price of the venue''s own candle, in the quote',
    close_off_bps Nullable(Float64) COMMENT 'Distance of close from venue_close, basis points; NULL without one',
    verdict LowCardinality(String) COMMENT 'complete: volume within 1 % and close within 1 bp; missing: no trade was received of a minute that has volume; off: all else',
    read_time DateTime64(9, 'UTC') COMMENT 'When the venue''s candle was read',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: the later of read_time and a minute after the end of the minute'
)
AS SELECT b.venue AS venue, b.symbol AS symbol, b.start AS start, b.coin_id AS coin_id, toFloat64(c.volume) AS volume, toFloat64(b.volume) AS venue_volume,
    100 * (volume / nullIf(venue_volume, 0) - 1) AS volume_off, c.trades AS trades, if(c.trades = 0, NULL, toFloat64(c.close)) AS close, toFloat64(b.close) AS venue_close,
    10000 * (close / nullIf(venue_close, 0) - 1) AS close_off_bps,
    multiIf(trades = 0 AND venue_volume > 0, 'missing', abs(volume - venue_volume) <= 0.01 * venue_volume AND ifNull(abs(close_off_bps), 0) <= 1, 'complete', 'off') AS verdict,
    b.ingest_time AS read_time, greatest(b.ingest_time, toDateTime64(b.start + 120, 9, 'UTC')) AS published
FROM (SELECT * FROM {database}.backfill FINAL WHERE seconds = 60) AS b
-- Minutes before the first live one were never received, those of markets that are not read neither.
INNER JOIN (SELECT venue, symbol, min(start) AS first, max(start) AS last FROM {database}.venue_candles_1m GROUP BY venue, symbol) AS l ON l.venue = b.venue AND l.symbol = b.symbol
LEFT JOIN (SELECT venue, symbol, start, volume, trades, close FROM {database}.venue_candles_1m FINAL) AS c ON c.venue = b.venue AND c.symbol = b.symbol AND c.start = b.start
WHERE b.start >= l.first AND b.start <= l.last
COMMENT 'Minutes of markets that were received live and read from the venue afterwards, compared: one row a market and minute of which the back-fill has the venue''s own candle'
