package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// impatience is how many signals end the process at once. Supervisors and terminals send a second one of their own accord,
// within the same second; what is being drained then is whole, and what is logged is written.
const impatience = 3

// Interruptible returns a context that the first SIGTERM or interrupt ends; the third one ends the process at once. It is
// for main: nobody else may decide about signals.
func Interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, impatience)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			<-signals
			if cancel(); n == impatience {
				os.Exit(ExitInterrupted)
			}
		}
	}()
	return ctx
}
