CREATE OR REPLACE VIEW default.v_lag
(
    sink LowCardinality(String) COMMENT 'Topic whose records are kept in tables',
    log_partition Int32 COMMENT 'Partition',
    next_offset Int64 COMMENT 'Offset below which every record is in its table',
    log_time DateTime64(9, 'UTC') COMMENT 'Log time of the newest of them',
    behind_seconds Nullable(Float64) COMMENT 'How far that lies behind the newest log time of any sink, seconds; NULL of topics in which no clock is written, where silence is no lag',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: its log_time. The row is replaced'
)
AS SELECT sink, log_partition, next_offset, log_time,
    if(sink IN {clockless}, NULL, dateDiff('millisecond', log_time, (SELECT max(log_time) FROM {database}.ledger FINAL WHERE generation = 0)) / 1000) AS behind_seconds, log_time AS published
FROM {database}.ledger FINAL WHERE generation = 0
COMMENT 'How far the tables have come in the log, one row a topic and partition'
