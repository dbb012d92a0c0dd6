CREATE OR REPLACE VIEW default.v_earn_changes
(
    time DateTime('UTC') COMMENT 'End of the minute in which it changed',
    product_id String COMMENT 'The product: provider:coin:category',
    variant_id String COMMENT 'The variant; empty where the whole product opened or closed',
    provider LowCardinality(String) COMMENT 'Whose product it is',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    symbol LowCardinality(String) COMMENT 'Symbol of the coin',
    category LowCardinality(String) COMMENT 'lending or staking',
    field LowCardinality(String) COMMENT 'What changed: status, cap, min, lockup, notice, tiers, payout, promo or countries',
    before String COMMENT 'What it was; empty for none',
    after String COMMENT 'What it is since; empty for none',
    simulated Bool COMMENT 'Reported by a simulated source',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its minute by log time, by when it is written'
)
AS SELECT time, product_id, variant_id, provider, coin_id, symbol, category, field, before, after, simulated, toDateTime64(time + toIntervalMinute(1), 9, 'UTC') AS published
FROM {database}.earn_changes FINAL
COMMENT 'Terms of earn products that changed, kept for ever; rates that move are no changes'
