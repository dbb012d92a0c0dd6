// Package faults lets a test of crashes choose where this process dies. In a normal build every
// function is empty and inlined away; in a build with the tag "faults" the process kills itself,
// as kill -9 does, at a named step, and writes down what was acknowledged to it before.
//
// A tagged build reads five variables of the environment, each optional:
//
//	MARKETLOG_FAULT=step:n     dies at the n-th Hit of that step, n from 1
//	MARKETLOG_FAULT_LOG=file   gets the line "killed step n" just before
//	MARKETLOG_ACK_LOG=file     gets the event ids passed to Acked, hex, one a line
//	MARKETLOG_FAULT_CLOCK=-5m  moves the clock of the producers, so that log time passes faster than the test
//	MARKETLOG_FAULT_CLOCK_FILE=file  moves it by what the file holds at each moment, as 1m: a machine that slept
package faults
