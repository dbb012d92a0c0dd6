CREATE OR REPLACE VIEW default.v_fixings
(
    currency LowCardinality(String) COMMENT 'ISO 4217 code of the currency',
    day Date COMMENT 'Day that the rate was fixed for',
    usd Float64 COMMENT 'USD for one unit of the currency',
    source LowCardinality(String) COMMENT 'Who fixed it',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read. Of a day that was corrected the first rate is not kept'
)
AS SELECT currency, day, usd, source, read_time AS published FROM {database}.fixings_usd
COMMENT 'Daily reference rates of currencies, kept for ever; one counts until the next, for 6 days at most'
