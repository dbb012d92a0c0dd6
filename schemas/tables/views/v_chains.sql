CREATE OR REPLACE VIEW default.v_chains
(
    time DateTime64(9, 'UTC') COMMENT 'When it was read',
    source LowCardinality(String) COMMENT 'Who told it',
    chain String COMMENT 'By the source''s own name',
    coin_id String COMMENT 'Its own coin; empty where the source tells none',
    tvl Nullable(Float64) COMMENT 'Locked on it, USD'
)
AS SELECT ingest_time AS time, source, chain, coin_id, tvl FROM {database}.chain_tvl FINAL
COMMENT 'What sources said of chains, one row whenever one said it; kept for 90 days'
