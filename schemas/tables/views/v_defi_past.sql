CREATE OR REPLACE VIEW default.v_defi_past
(
    time DateTime('UTC') COMMENT 'When it was locked: the beginning of a day',
    source LowCardinality(String) COMMENT 'Who reported it afterwards',
    total_tvl Float64 COMMENT 'Locked in protocols by the count of the source, USD: it leaves out all that it knows to be counted twice, which total_tvl of v_defi does not; see coverage',
    coverage Nullable(Float64) COMMENT 'The newest total that the source reported, as a share of the newest total_tvl of v_defi, percent, at most 100; NULL without one',
    measured Bool COMMENT 'Whether v_defi had begun by then: answers hold only what was before that',
    origin String COMMENT 'backfill: reported afterwards',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read last; when it was first is not kept. coverage is as of now'
)
AS SELECT time, source, total_tvl, coverage, measured, 'backfill' AS origin, read_time AS published FROM {database}.defi_told
COMMENT 'The past of what is locked in all of DeFi, by the count of its source; what was measured here is in v_defi'
