package deploy

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible returns a context that the first SIGTERM or interrupt ends; a second one ends the process at once. It is
// for main: nobody else may decide about signals.
func Interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx
}
