import ArgumentParser
@main struct M: ParsableCommand { func run() {} }
