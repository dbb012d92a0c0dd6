// Package sqlport serves analysts' SQL so that a statement can end at most the process that it runs in, which is not the
// server's.
//
// The embedded engine is a library: a fault in any of its functions ends the process around it. So the statements of analysts
// run in a child process with an engine of its own. The server's engine stays the one owner of its tables; the child
// attaches the same tables read-only, on the same files, and looks for new parts once a second. It begins with the first
// statement, ends after a while without one, and is started again when it ends by itself.
//
// The child is confined by the operating system before it loads the engine (Linux: Landlock, resource limits): it reads
// the tables and the system's libraries, writes into a folder of its own, starts no program and opens no connection.
package sqlport
