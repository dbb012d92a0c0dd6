// Package chaos kills the whole pipeline while ticks flow, again and again, at named steps and at random
// moments, and then asks whether anything was lost, doubled or changed: every acknowledged event is in
// exactly one of ticks and dead letters, prices and candles are what an independent fold of the log
// gives, and neither a subscriber nor a reader of REST saw time go back or an age hidden.
//
// MARKETLOG_KILLS is how often it kills, MARKETLOG_KILL_SEED decides when. MARKETLOG_KILL_REPORT names
// a file that gets a line for each round; rounds that it holds already are not run again. MARKETLOG_FULL_DISKS is how often
// a small disk is filled, MARKETLOG_ENGINE_ROUNDS how often the engine is disturbed.
package chaos
