package reference

import (
	"testing"

	"github.com/marketlog/marketlog/producers/answer/answertest"
)

func TestSourcesReadTheirAnswers(t *testing.T) { answertest.Scripts(t, List()) }

func TestDeclarationsAreWhole(t *testing.T) { answertest.Declarations(t, List()) }

func TestEveryFeedHasADescriptionThatFits(t *testing.T) { answertest.Formats(t, List()) }

func FuzzDecode(f *testing.F) { answertest.Fuzz(f, List()) }
