CREATE OR REPLACE VIEW default.v_chains
(
    time DateTime64(9, 'UTC') COMMENT 'When it was read',
    source LowCardinality(String) COMMENT 'Who reported it',
    chain String COMMENT 'By the source''s own name',
    coin_id String COMMENT 'Its own coin; empty where the source reports none',
    tvl Nullable(Float64) COMMENT 'Locked on it, USD',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as time'
)
AS SELECT ingest_time AS time, source, chain, coin_id, tvl, ingest_time AS published FROM {database}.chain_tvl FINAL
COMMENT 'What sources reported of chains, one row for each report; kept for 90 days'
