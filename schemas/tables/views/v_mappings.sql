CREATE OR REPLACE VIEW default.v_mappings
(
    source LowCardinality(String) COMMENT 'Venue or source; general for all',
    symbol String COMMENT 'Symbol as it is spelled there',
    coin_id String COMMENT 'Canonical id of the coin that it means',
    method LowCardinality(String) COMMENT 'manual_override: an operator says so; exchange_mapping: the coin table names this spelling; unique_symbol: one coin of the table has it; coin_database: the largest of those that have it',
    confidence UInt8 COMMENT 'Percent; what the method gives at least',
    valid_from DateTime64(9, 'UTC') COMMENT 'When it was first read so, of ticks that are kept; or the time of the override',
    valid_to Nullable(DateTime64(9, 'UTC')) COMMENT 'When it was last read so where the symbol means another coin since, or the override was replaced; NULL while it holds',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: as valid_from. valid_to was known only later'
)
AS SELECT t.venue AS source, t.base AS symbol, t.coin_id AS coin_id,
    multiIf(upper(t.base) != c.symbol, 'exchange_mapping', c.shared, 'coin_database', 'unique_symbol') AS method,
    multiIf(upper(t.base) != c.symbol, 95, c.shared, 80, 90) AS confidence,
    t.first AS valid_from, if(t.last < max(t.last) OVER (PARTITION BY t.venue, t.base), t.last, NULL) AS valid_to, valid_from AS published
FROM (
    SELECT venue, toString(base) AS base, toString(coin_id) AS coin_id, min(ingest_time) AS first, max(ingest_time) AS last
    FROM {database}.ticks WHERE coin_id != '' GROUP BY venue, base, coin_id
) AS t
LEFT JOIN {database}.coin_table AS c ON c.coin_id = t.coin_id
UNION ALL
SELECT source, symbol, coin_id, 'manual_override', 100, time, if(next.1, next.2, NULL), time FROM (
    SELECT source, symbol, coin_id, time,
        leadInFrame((true, time)) OVER (PARTITION BY source, symbol ORDER BY time ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next
    FROM {database}.overrides FINAL
) WHERE coin_id != ''
COMMENT 'Which coin a symbol means, one row a source, symbol and coin: of venues by the ticks that are kept, of overrides for ever'
