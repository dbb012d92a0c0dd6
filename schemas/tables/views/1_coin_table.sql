CREATE OR REPLACE VIEW {database}.coin_table
(
    coin_id String,
    symbol String,
    kind String,
    peg String,
    shared Bool
)
AS SELECT coin.1 AS coin_id, coin.2 AS symbol, coin.3 AS kind, coin.4 AS peg, toBool(count() OVER (PARTITION BY symbol) > 1) AS shared
FROM (SELECT arrayJoin({coins}) AS coin)
COMMENT 'The coin table; shared symbols are those of several of its coins'
