CREATE OR REPLACE VIEW default.v_breadth
(
    time DateTime('UTC') COMMENT 'End of the minute',
    rising UInt32 COMMENT 'Coins whose price rose in it',
    falling UInt32 COMMENT 'Coins whose price fell in it',
    unchanged UInt32 COMMENT 'Coins whose price did neither'
)
AS SELECT time, rising, falling, unchanged
FROM {database}.breadth FINAL
COMMENT 'Coins that rose and fell, by minute'
