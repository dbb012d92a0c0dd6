CREATE OR REPLACE VIEW default.v_gaps
(
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market; empty for the whole connection',
    reason LowCardinality(String) COMMENT 'sequence, disconnect, silence or overflow',
    from_time DateTime64(9, 'UTC') COMMENT 'Last thing heard before the gap',
    to_time DateTime64(9, 'UTC') COMMENT 'First thing heard after it',
    missed UInt64 COMMENT 'Messages known to be missing; 0 if unknown'
)
AS SELECT venue, symbol, reason, from_time, to_time, missed FROM {database}.gaps FINAL
COMMENT 'Stretches in which a venue was not heard as it should be, kept for at least 90 days'
