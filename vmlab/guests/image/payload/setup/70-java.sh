#!/bin/sh
# Compiles the suite of Java programs by Eclipse's compiler, which one of the programs uses too.
set -eu
jvm=/usr/lib/vmlab/jvm
libraries=/usr/share/java
# From Debian 13 on the compiler is a jar of its own; a name in the class path that is not there is passed over.
compiler="$libraries/eclipse-jdt-core.jar:$libraries/eclipse-jdt-core-compiler-batch.jar"
java -cp "$compiler" org.eclipse.jdt.internal.compiler.batch.Main \
    -proc:none -source 17 -target 17 -d "$jvm/classes" \
    -cp "$compiler:$libraries/jl.jar:$libraries/sunflow.jar" "$jvm/source/members"
