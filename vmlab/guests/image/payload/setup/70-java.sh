#!/bin/sh
# Compiles the suite of Java programs by Eclipse's compiler, which one of the programs uses too.
set -eu
jvm=/usr/lib/vmlab/jvm
libraries=/usr/share/java
java -cp "$libraries/eclipse-jdt-core.jar" org.eclipse.jdt.internal.compiler.batch.Main \
    -proc:none -source 17 -target 17 -d "$jvm/classes" \
    -cp "$libraries/eclipse-jdt-core.jar:$libraries/jl.jar:$libraries/sunflow.jar" "$jvm/source/members"
