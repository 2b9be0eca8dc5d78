/// The place where the work of a task with a handle begins.
enum WorkPlace {
    /// In the concurrent pool.
    case elsewhere
    /// On the thread that resumes the task, for one whose creator then waits for its value. That saves a change of
    /// threads.
    case caller
    /// On the thread that resumes the task, and then on the transport's, which saves two changes of threads. The work
    /// must not run code of the caller.
    case loop
}
