CREATE OR REPLACE VIEW default.v_defi_lists
(
    list LowCardinality(String) COMMENT 'lending_protocols, lending_assets, staking_protocols, staking_chains, borrowing_protocols or borrowing_assets',
    position UInt32 COMMENT '1 is the largest',
    time DateTime('UTC') COMMENT 'End of the minute: that of the last row of v_defi',
    key String COMMENT 'Slug of the protocol, id of the coin or name of the chain',
    name String COMMENT 'Name of the protocol or chain',
    symbol String COMMENT 'Symbol of the coin, or of the protocol''s own',
    coin_id String COMMENT 'Of a chain: its own coin',
    chains Array(LowCardinality(String)) COMMENT 'Of a lender: the chains it is on, that with most of it first',
    value Float64 COMMENT 'Locked, supplied, staked or owed, by the list, USD',
    share Nullable(Float64) COMMENT 'Share of the whole that the list is of, percent',
    change_24h Nullable(Float64) COMMENT 'Of a lender: change of value within 24 h by the source, percent',
    change_7d Nullable(Float64) COMMENT 'The same within 7 days',
    apy Nullable(Float64) COMMENT 'What lending or staking earns, percent',
    borrow_apy Nullable(Float64) COMMENT 'What borrowing costs, percent',
    utilization Nullable(Float64) COMMENT 'Of a lender: borrowed / supplied, percent',
    collateral Nullable(Float64) COMMENT 'Of a debtor protocol: what was supplied to it, USD',
    collateralization_ratio Nullable(Float64) COMMENT 'collateral / value, percent',
    staking_ratio Nullable(Float64) COMMENT 'Of a chain: value / market cap of its coin, percent',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its minute by log time, by when it is written. What the lists were before is not kept'
)
AS SELECT * EXCEPT (log_partition, log_offset, version),
    toDateTime64(time + toIntervalMinute(1), 9, 'UTC') AS published FROM {database}.defi_lists FINAL WHERE time = (SELECT max(time) FROM {database}.defi)
COMMENT 'The largest protocols, assets and chains of DeFi as of its last summary'
