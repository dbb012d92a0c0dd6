CREATE OR REPLACE VIEW default.v_fixings
(
    currency LowCardinality(String) COMMENT 'ISO 4217 code of the currency',
    day Date COMMENT 'Day that the rate was fixed for',
    usd Float64 COMMENT 'USD for one unit of the currency',
    source LowCardinality(String) COMMENT 'Who fixed it'
)
AS SELECT currency, day, usd, source FROM {database}.fixings_usd
COMMENT 'Daily reference rates of currencies, kept for ever; one counts until the next, for 6 days at most'
