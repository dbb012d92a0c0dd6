package market

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

// fearGreed is the only number whose name has no slash.
const fearGreed = "fear-greed"

// treeIndent is what each level is set in by.
const treeIndent = "  "

func showTree(out *command.Output, answer api.ExplainBody) { showNode(out, &answer.Data, "") }

func showNode(out *command.Output, n *api.ExplainNode, indent string) {
	line := indent + n.Number + " = " + exact(n.Value)
	if n.Unit != "" {
		line += " " + n.Unit
	}
	if !n.Time.IsZero() {
		line += " at " + n.Time.Format(serverTime)
	}
	out.Text("%s", line)
	indent += treeIndent
	if n.Method != nil {
		out.Text("%s%s, version %d: %s", indent, n.Method.Name, n.Method.Version, n.Method.Formula)
	}
	switch {
	case n.Reproduced == nil:
	case *n.Reproduced:
		out.Text("%scomputed again from the log: the same number", indent)
	case n.Recomputed != nil:
		out.Text("%scomputed again from the log: %s, which is NOT the same", indent, exact(n.Recomputed))
	default:
		out.Text("%sit could not be computed again", indent)
	}
	if n.Note != "" {
		out.Text("%s%s", indent, n.Note)
	}
	if len(n.Records) > 0 {
		places := make([]string, len(n.Records))
		for i, r := range n.Records {
			places[i] = fmt.Sprintf("%s/%d@%d", r.Topic, r.Partition, r.Offset)
		}
		out.Text("%sin the log: %s", indent, strings.Join(places, ", "))
	}
	for i := range n.Inputs {
		showNode(out, &n.Inputs[i], indent)
	}
	if left := n.LeftOut; left != nil && left.Sum != nil {
		out.Text("%sand %d more, together %s", indent, left.Count, exact(left.Sum))
	} else if left != nil {
		out.Text("%sand %d more", indent, left.Count)
	}
}

// exact writes all digits: whether two numbers are the same is decided by the last one.
func exact(v *float64) string {
	if v == nil {
		return unknown
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}
