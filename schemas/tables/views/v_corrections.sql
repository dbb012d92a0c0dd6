CREATE OR REPLACE VIEW default.v_corrections
(
    id String COMMENT 'Name of the correction, which v_restatements gives as cause of what it restated',
    time DateTime64(9, 'UTC') COMMENT 'From when on new prices apply it, by log time',
    kind LowCardinality(String) COMMENT 'exclude: ticks are left out. withdraw: an exclusion is taken back',
    venue LowCardinality(String) COMMENT 'Venue whose ticks are left out; of a withdrawal empty',
    symbol String COMMENT 'Market that is left out, as on the wire in upper case; empty for all markets of the venue',
    valid_from Nullable(DateTime64(9, 'UTC')) COMMENT 'Ticks that were received then or later are left out; NULL of a withdrawal',
    valid_to Nullable(DateTime64(9, 'UTC')) COMMENT 'And before this; NULL without an end',
    author String COMMENT 'Who wrote it',
    reason String COMMENT 'Why',
    evidence String COMMENT 'Address or text that shows it; may be empty',
    withdraws String COMMENT 'Of a withdrawal the exclusion that it takes back; else empty',
    withdrawn_by String COMMENT 'Withdrawal of this exclusion; empty while it holds',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: as time'
)
AS SELECT c.id AS id, c.time AS time, c.kind AS kind, c.venue AS venue, c.symbol AS symbol,
    if(c.kind = 'exclude', c.valid_from, NULL) AS valid_from, if(toUnixTimestamp64Nano(c.valid_to) = 0, NULL, c.valid_to) AS valid_to,
    c.author AS author, c.reason AS reason, c.evidence AS evidence, c.withdraws AS withdraws, w.id AS withdrawn_by, c.time AS published
FROM {database}.corrections AS c FINAL
LEFT JOIN (SELECT withdraws AS of, argMin(id, (time, id)) AS id FROM {database}.corrections FINAL WHERE kind = 'withdraw' GROUP BY withdraws) AS w ON w.of = c.id
COMMENT 'What operators excluded of venues'' ticks and took back, with reasons, kept for ever'
