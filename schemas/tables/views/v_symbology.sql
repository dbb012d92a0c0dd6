CREATE OR REPLACE VIEW default.v_symbology
(
    venue LowCardinality(String) COMMENT 'Venue',
    symbol String COMMENT 'Symbol of the market as on the wire',
    base LowCardinality(String) COMMENT 'Base as the venue''s list has it',
    quote LowCardinality(String) COMMENT 'Quote as the list has it',
    coin_id LowCardinality(String) COMMENT 'Coin that the base meant by the coin table of the version that recorded it; empty if it was unmapped. An override of an operator is in v_mappings',
    quote_id LowCardinality(String) COMMENT 'Coin id or currency code that the quote meant; empty if it was unmapped',
    valid_from DateTime64(9, 'UTC') COMMENT 'When the list that said so was read',
    valid_to Nullable(DateTime64(9, 'UTC')) COMMENT 'When a list was read that said otherwise, or had it no more; NULL while it holds',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: as valid_from. valid_to was known only later'
)
AS SELECT venue, symbol, base, quote, coin_id, quote_id, time AS valid_from, if(next >= '2200-01-01 00:00:00', NULL, next) AS valid_to, time AS published
FROM {database}.listing_changes WHERE NOT gone
COMMENT 'Which coin and quote a venue''s symbol meant, and from when to when, one row a market and meaning, kept for ever'
