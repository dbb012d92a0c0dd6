package mcp_test

import "testing"

// TestHandler holds the handler to what it promises, in one world: opening a store costs more than all of it.
func TestHandler(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T, *world){
		"ToolsAreDescribedForEveryClient": testToolsAreDescribedForEveryClient,
		"ResultsAreTheEndpointsAnswers":   testResultsAreTheEndpointsAnswers,
		"BridgeListsTheServersTools":      testBridgeListsTheServersTools,
		"BridgeAnswersEveryCall":          testBridgeAnswersEveryCall,
		"BridgeTellsOfItsServersFaults":   testBridgeReportsItsServersFaults,
	} {
		t.Run(name, func(t *testing.T) { test(t, w.in(t)) })
	}
}
