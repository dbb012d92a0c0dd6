package mcp_test

import "testing"

// TestHandler holds the handler to what it promises, over one fixture: opening a store costs more than all of it.
func TestHandler(t *testing.T) {
	w := newFixture(t)
	for name, test := range map[string]func(*testing.T, *fixture){
		"ToolsAreDescribedForEveryClient": testToolsAreDescribedForEveryClient,
		"ResultsAreTheEndpointsAnswers":   testResultsAreTheEndpointsAnswers,
		"BridgeListsTheServersTools":      testBridgeListsTheServersTools,
		"BridgeAnswersEveryCall":          testBridgeAnswersEveryCall,
		"BridgeTellsOfItsServersFaults":   testBridgeReportsItsServersFaults,
	} {
		t.Run(name, func(t *testing.T) { test(t, w.in(t)) })
	}
}
