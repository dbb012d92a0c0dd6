package topics

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/schemas/events"
)

// topicSchemaCommand prints schemas. It needs no instance.
func topicSchemaCommand(rt *command.Runtime) *cobra.Command {
	var descriptors bool
	cmd := &cobra.Command{
		Use:   "schema [TOPIC]",
		Short: "Print the protobuf schema of a topic's records, or the message type of each topic",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if descriptors {
				set, err := events.Files.ReadFile(operations.DescriptorSet)
				if err != nil {
					return err
				}
				_, err = rt.Stdout.Write(set)
				return err
			}
			if len(args) == 0 {
				all, err := operations.TopicSchemas()
				if err != nil {
					return err
				}
				for _, s := range all {
					if _, err := fmt.Fprintf(rt.Stdout, "%s\t%s\t%s\n", s.Topic, s.Message, s.File); err != nil {
						return err
					}
				}
				return nil
			}
			topic, err := schemas.TopicNamed(args[0])
			if err != nil {
				return fmt.Errorf("%w; `marketlog topics schema` lists them", err)
			}
			schema, err := operations.SchemaOf(topic)
			if err != nil {
				return err
			}
			text, err := operations.SchemaFile(schema.File)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(rt.Stdout, "// The values of %s are messages %s of %s:\n\n%s", schema.Topic, schema.Message, schema.File, bytes.TrimLeft(text, "\n"))
			return err
		},
	}
	cmd.Flags().BoolVar(&descriptors, "descriptors", false, "print the FileDescriptorSet of all schemas, for programs")
	return cmd
}
