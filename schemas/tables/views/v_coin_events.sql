CREATE OR REPLACE VIEW default.v_coin_events
(
    time DateTime64(9, 'UTC') COMMENT 'When it was read',
    coin_id String COMMENT 'Canonical id of the coin; empty where our tables cannot tell which the source means',
    source LowCardinality(String) COMMENT 'Who says it',
    source_id String COMMENT 'The coin''s id there',
    part LowCardinality(String) COMMENT 'list or detail: what was asked for',
    changed Array(String) COMMENT 'What differs from what the source reported before; empty in the first row of a coin. Ranks and statistics are no changes',
    symbol String COMMENT 'Symbol as the source writes it',
    name String COMMENT 'Name',
    rank UInt32 COMMENT 'Rank by the source; 0 for none',
    kind LowCardinality(String) COMMENT 'coin or token, as far as it reports',
    categories Array(String) COMMENT 'Categories',
    platforms Array(Tuple(name String, address String)) COMMENT 'Chains that the coin is issued on, by the source''s name, and its address there',
    image_url String COMMENT 'Address of its image',
    created_at String COMMENT 'When the coin began, by the source, ISO 8601',
    inactive Bool COMMENT 'Whether it is not traded any more',
    event_time DateTime64(9, 'UTC') COMMENT 'When the source itself says that it changed; 1970 if it does not say',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as time'
)
AS SELECT *, time AS published FROM {database}.coin_changes
COMMENT 'What sources reported of coins, one row each time that it changed, kept for ever'
