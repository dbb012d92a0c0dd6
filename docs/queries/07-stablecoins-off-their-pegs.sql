-- Stablecoins that lost their pegs
--
-- Columns: coin_id; peg; start; trough_bps, the furthest from the peg; recovery, empty while it lasts; minutes in between with a price.
-- Right because: an episode begins at 50 basis points and ends below 25, so that a price at the bound is one episode, not many.
SELECT coin_id, peg, start, trough_bps, recovery, minutes
FROM v_peg_episodes
ORDER BY start DESC
LIMIT 20
